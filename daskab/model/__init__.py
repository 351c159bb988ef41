"""What is certified: kernel expansion, its file format, fitting."""
