"""What people see: words, pictures, pages."""
