//! Object stores: in memory and in folders against a model, failing and slow ones.

mod calls;
mod faulty;
mod folder;
mod model;
mod timed;
