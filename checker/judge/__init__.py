"""Judge: the verdict of a level on a history, with a witness."""
