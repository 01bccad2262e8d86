//! Files that are read again when they change.
//!
//! By their content, looked at every few seconds: file events miss what a kubelet does, which swaps
//! a symbolic link two folders up, and say nothing of what is in a file.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::sleep;

/// An interval of nothing would keep a core busy with reading.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(5);

/// Files whose content is remembered.
#[derive(Debug)]
pub struct Followed {
    files: Vec<PathBuf>,
    seen: Vec<Content>,
}

/// What a file holds, or why it cannot be read.
type Content = Result<Vec<u8>, io::ErrorKind>;

impl Followed {
    /// Remembers what the files hold now. To miss no change, make one before reading them.
    #[must_use]
    pub fn new(files: Vec<PathBuf>) -> Self {
        let seen = files.iter().map(|file| std::fs::read(file).map_err(|error| error.kind())).collect();
        Self { files, seen }
    }

    /// Waits until one of the files holds something else, or becomes readable or unreadable;
    /// they are looked at every
    /// `interval`, of 5 ms at least.
    pub async fn changed(&mut self, interval: Duration) {
        loop {
            sleep(interval.max(SHORTEST_INTERVAL)).await;
            let mut now = Vec::with_capacity(self.files.len());
            for file in &self.files {
                now.push(tokio::fs::read(file).await.map_err(|error| error.kind()));
            }
            if now != self.seen {
                self.seen = now;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    const OFTEN: Duration = Duration::from_millis(5);

    /// Whether a change is noticed. One that is made in two steps may be noticed twice.
    async fn notices(followed: &mut Followed, change: impl FnOnce()) -> bool {
        change();
        let is_noticed = tokio::time::timeout(Duration::from_secs(60), followed.changed(OFTEN)).await.is_ok();
        while tokio::time::timeout(10 * OFTEN, followed.changed(OFTEN)).await.is_ok() {}
        is_noticed
    }

    /// Points a link elsewhere as the kubelet does: a new link is renamed over the old one.
    fn point(link: &Path, folder: &str) -> io::Result<()> {
        let new = link.with_file_name("new");
        std::os::unix::fs::symlink(folder, &new)?;
        fs::rename(new, link)
    }

    #[tokio::test]
    async fn notices_content_however_it_comes() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        for (version, text) in [("..v1", "one"), ("..v2", "two")] {
            fs::create_dir(path(version))?;
            fs::write(path(version).join("file"), text)?;
        }
        point(&path("..data"), "..v1")?;
        std::os::unix::fs::symlink("..data/file", path("file"))?;
        let mut followed = Followed::new(vec![path("file")]);
        assert!(tokio::time::timeout(10 * OFTEN, followed.changed(OFTEN)).await.is_err());
        assert!(notices(&mut followed, || point(&path("..data"), "..v2").unwrap()).await);
        assert!(notices(&mut followed, || fs::write(path("..v2/file"), "three").unwrap()).await);
        assert!(notices(&mut followed, || fs::remove_file(path("file")).unwrap()).await);
        assert!(notices(&mut followed, || fs::write(path("file"), "three").unwrap()).await);
        Ok(())
    }
}
