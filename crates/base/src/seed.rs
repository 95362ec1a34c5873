//! The seed of random tests.

/// The seed of a random test; prints it. It is `default` unless `SNOWMELT_SEED=n` sets another one
/// or `SNOWMELT_SEED=new` takes one from the clock. With a constant default, a failure belongs to
/// the change that it appears with.
#[doc(hidden)]
pub fn test_seed(default: u64) -> u64 {
    let seed = match std::env::var("SNOWMELT_SEED").as_deref() {
        Err(_) => default,
        Ok("new") => std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64,
        Ok(text) => text.parse().expect("SNOWMELT_SEED is a number or `new`"),
    };
    eprintln!("SNOWMELT_SEED={seed}");
    seed
}
