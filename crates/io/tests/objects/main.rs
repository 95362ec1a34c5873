//! Object stores: in memory and in folders against a model, failing and slow ones, and the layer
//! that is patient with them.

mod calls;
mod faulty;
mod folder;
mod model;
mod patient;
mod timed;
mod width;
