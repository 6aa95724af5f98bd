"""A Flower app: a small network learns Fashion-MNIST from several clients."""
