"""The fault harness: malformed inputs over every format that is read. `python -m tests.faults --help` runs it long."""
