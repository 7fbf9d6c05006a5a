//! The demo: not written yet. It refuses to pretend.
