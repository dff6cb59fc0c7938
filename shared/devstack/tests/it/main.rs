//! devstack against real servers and real processes.

mod child;
mod private;
mod servers;
mod support;
mod test_db;
