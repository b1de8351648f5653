mod induced;
mod saint;
