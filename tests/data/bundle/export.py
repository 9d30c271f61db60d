"""Write the sums to a file."""
