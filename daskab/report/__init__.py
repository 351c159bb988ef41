"""What people read: a certificate in words and figures."""
