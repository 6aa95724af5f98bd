"""What holds for every test."""

import torch

# Several test processes with several threads each wait for one another: ten times slower than one thread each.
torch.set_num_threads(1)
