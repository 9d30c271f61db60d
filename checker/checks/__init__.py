"""The verb check, of every kind of history."""
