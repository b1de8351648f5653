//! Graph neural networks for the Burn framework.
