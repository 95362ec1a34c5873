//! Beliefs about a volume that changes while queries run on it (`changing`, in virtual time), and
//! looks at them as a picture (`picture`).

pub mod changing;
pub mod picture;
#[cfg(test)]
mod tests;
