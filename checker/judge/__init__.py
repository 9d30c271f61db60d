"""The core: a history and a level give a verdict with a witness."""
