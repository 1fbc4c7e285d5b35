"""What runs in the same process as a program. Imports only the standard library."""
