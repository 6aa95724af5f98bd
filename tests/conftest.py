"""What holds for every test."""

import torch
from hypothesis import settings

# A busy machine is no reason to fail.
settings.register_profile("gradveil", deadline=None)
settings.load_profile("gradveil")
# Several test processes with several threads each wait for one another: ten times slower than one thread each.
torch.set_num_threads(1)
