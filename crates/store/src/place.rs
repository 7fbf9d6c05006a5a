//! Where a store is: an API server or a directory. It refuses anything else, by name of what would be understood.

use std::{fmt, path::PathBuf, str::FromStr};

/// A store's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A directory of files.
    Dir(PathBuf),
    /// An API server, by the context of the kubeconfig or the current one.
    Kube {
        /// The context.
        context: Option<String>,
    },
    /// The API server of the cluster in which this pod runs, by the pod's own account, whatever a kubeconfig says.
    InCluster,
}

const IN_CLUSTER: &str = "in-cluster";

/// Why a place can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The text is no place.
    #[error("{0:?} is not a place: write dir:PATH, kube, kube:CONTEXT, or in-cluster")]
    Unknown(String),
    /// The path is missing.
    #[error("dir: needs a path, such as dir:/var/lib/spanwire")]
    NoPath,
}

impl FromStr for Place {
    type Err = PlaceError;
    fn from_str(text: &str) -> Result<Self, PlaceError> {
        match text.split_once(':') {
            Some(("dir", "")) => Err(PlaceError::NoPath),
            Some(("dir", path)) => Ok(Place::Dir(PathBuf::from(path))),
            Some(("kube", context)) if !context.is_empty() => {
                Ok(Place::Kube { context: Some(context.to_owned()) })
            }
            None if text == "kube" => Ok(Place::Kube { context: None }),
            None if text == IN_CLUSTER => Ok(Place::InCluster),
            Some(_) | None => Err(PlaceError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Dir(path) => write!(f, "dir:{}", path.display()),
            Place::Kube { context: Some(context) } => write!(f, "kube:{context}"),
            Place::Kube { context: None } => f.write_str("kube"),
            Place::InCluster => f.write_str(IN_CLUSTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_round_trip() {
        for text in ["dir:/srv/a", "dir:relative", "kube", "kube:prod", "in-cluster"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        for (bad, words) in
            [("dir:", "needs a path"), ("kube:", "dir:PATH"), ("/srv", "dir:PATH"), ("s3:x", "in-cluster")]
        {
            let error = bad.parse::<Place>().unwrap_err().to_string();
            assert!(error.contains(words), "{bad}: {error}");
        }
    }
}
