"""Published tables and figures, and our own: what runs, and how it renders."""
