"""Prediction: which jobs abort each other, and when."""
