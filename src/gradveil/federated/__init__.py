"""Collaborative training: participants, their server or their neighbours, and what each of them gets to see."""
