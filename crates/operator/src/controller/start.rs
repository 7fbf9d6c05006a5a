//! Wires a controller from its command line: folder, lock, store, events. It refuses to act beside another controller.
