//! Every example that a reader may copy is taken by the server as it stands. It refuses a list of them: what is in the
//! documents is found.

use std::path::{Path, PathBuf};

use spanwire_testkit::{control_plane::ControlPlane, folder::workspace};

fn files(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, end, found);
        } else if path.extension().is_some_and(|extension| extension == end) {
            found.push(path);
        }
    }
}

/// The fenced blocks of a page that are manifests to apply: with a kind of ours and a spec.
fn blocks(page: &str) -> Vec<String> {
    let fences: Vec<&str> = page.split("```").collect();
    let yaml = fences.iter().filter_map(|fence| fence.strip_prefix("yaml\n"));
    yaml.filter(|text| text.contains("apiVersion: spanwire.dev/") && text.contains("\nspec:"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn every_example_of_the_documents_is_taken() {
    let Some(control) = ControlPlane::shared() else { return };
    let mut pages = vec![workspace().join("README.md")];
    files(&workspace().join("docs"), "md", &mut pages);
    let mut count = 0;
    for page in pages {
        for block in blocks(&std::fs::read_to_string(&page).unwrap()) {
            // Examples of different pages describe different worlds.
            let namespace = format!("example-{count}");
            control.namespace(&namespace).await.unwrap();
            let applied = control.apply(&namespace, &block).await;
            applied.unwrap_or_else(|error| panic!("{}: {error:?}\n{block}", page.display()));
            count += 1;
        }
    }
    assert!(count >= 3, "only {count} examples were found");
}

#[tokio::test]
async fn every_manifest_of_the_chart_is_taken() {
    let Some(control) = ControlPlane::shared() else { return };
    let mut manifests = Vec::new();
    files(&workspace().join("charts/spanwire/files/crds"), "yaml", &mut manifests);
    files(&workspace().join("charts/spanwire/files/roles"), "yaml", &mut manifests);
    control.namespace("spanwire").await.unwrap();
    assert!(manifests.len() >= 8, "{manifests:?}");
    for path in manifests {
        let applied = control.apply("spanwire", &std::fs::read_to_string(&path).unwrap()).await;
        applied.unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
    }
}
