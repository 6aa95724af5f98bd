"""What is timed, always beside a plain baseline in the same run."""
