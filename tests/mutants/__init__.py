"""Changes the code that decides, one place at a time, and asks whether a test notices."""
