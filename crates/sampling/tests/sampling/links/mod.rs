mod hetero;
mod homogeneous;
