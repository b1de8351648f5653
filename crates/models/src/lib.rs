//! Graph neural network layers, models and training on Burn.
