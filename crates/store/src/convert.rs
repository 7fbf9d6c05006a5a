//! Objects ⇄ the engine's types, one file a kind. It refuses judgement: text that a verdict is about passes as it is,
//! and only what the engine cannot hold is a fault of the field.

pub(crate) mod applied_intent;
mod field;
pub(crate) mod gateway;
pub(crate) mod intent;
pub(crate) mod link;
pub(crate) mod network;
mod words;
pub(crate) mod worker_status;

pub(crate) use field::FieldFault;
