//! `spanwire dataplane`: holds userspace devices until it is told to end. It refuses policy and reads no store.
