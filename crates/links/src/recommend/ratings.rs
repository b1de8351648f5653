//! Predicts ratings: biases of users and items, factors, and neighbours among items and users.
