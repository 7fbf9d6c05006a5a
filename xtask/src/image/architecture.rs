//! What each architecture is called, by Debian, by Rust and in images. It refuses those that nobody cross-checked.

use clap::ValueEnum;

/// An architecture of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Architecture {
    /// x86_64
    Amd64,
    /// aarch64, by a cross compiler where this machine is none
    Arm64,
}

impl Architecture {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// The one of this machine, if it is one of them.
    pub(crate) fn here() -> Option<Self> {
        Self::ALL.into_iter().find(|each| each.machine() == std::env::consts::ARCH)
    }

    /// As Debian and images call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// As Rust and the kernel call it.
    pub(crate) fn machine(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// The target of rustc.
    pub(crate) fn target(self) -> String {
        format!("{}-unknown-linux-gnu", self.machine())
    }

    /// Debian's folder of libraries below `usr/lib`, and the prefix of its cross compilers.
    pub(crate) fn tuple(self) -> String {
        format!("{}-linux-gnu", self.machine())
    }
}
