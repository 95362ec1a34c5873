//! Small files of the kernel, and a tree of a test that stands for them.

pub use snowmelt_io::{Controller, KernelFiles, MountPoint};

/// A tree of files of a test.
#[cfg(test)]
pub fn planted(files: &[(&str, &str)]) -> (tempfile::TempDir, KernelFiles) {
    let dir = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        std::fs::write(path, format!("{text}\n")).expect("written");
    }
    let files = KernelFiles::below(dir.path());
    (dir, files)
}
