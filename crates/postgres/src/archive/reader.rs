//! Reading records in order.
