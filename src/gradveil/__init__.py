"""gradveil: what do the updates shared in federated learning give away, and what stops it?"""

__version__ = "0.1.0"
