"""What predict, robust and invariants share: instances, patterns of cycles, examples."""
