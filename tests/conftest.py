"""What holds for every test."""

import os

# Several test processes with several threads each wait for one another: ten times slower than one thread each. The
# variable is for the commands that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from hypothesis import settings

torch.set_num_threads(1)
# A busy machine is no reason to fail.
settings.register_profile("gradveil", deadline=None)
settings.load_profile("gradveil")
