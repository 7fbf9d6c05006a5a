//! Values as small numbers, so that millions of worlds fit into memory. It refuses to forget a value.

use std::{collections::HashMap, hash::Hash, rc::Rc};

/// A table of distinct values.
pub(super) struct Table<T> {
    values: Vec<Rc<T>>,
    ids: HashMap<Rc<T>, u32>,
}

impl<T: Eq + Hash> Table<T> {
    pub(super) fn new() -> Self {
        Self { values: Vec::new(), ids: HashMap::new() }
    }

    pub(super) fn id(&mut self, value: T) -> u32 {
        if let Some(id) = self.ids.get(&value) {
            return *id;
        }
        let id = u32::try_from(self.values.len()).expect("fewer than 2^32 values fit into memory");
        let value = Rc::new(value);
        self.values.push(Rc::clone(&value));
        self.ids.insert(value, id);
        id
    }

    pub(super) fn get(&self, id: u32) -> Rc<T> {
        Rc::clone(&self.values[id as usize])
    }
}
