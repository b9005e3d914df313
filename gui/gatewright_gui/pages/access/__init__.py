"""Access: what one agent may do, and what holds for everyone."""
