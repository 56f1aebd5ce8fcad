use std::path::Path;
use std::sync::Arc;

use crate::{Error, Model, Result, Scripted};

/// The model with this name, as `provider/model`, split at the first `/`.
pub fn open(name: &str) -> Result<Arc<dyn Model>> {
    match name.split_once('/') {
        Some(("scripted", file)) if !file.is_empty() => Ok(Arc::new(Scripted::from_file(Path::new(file))?)),
        _ => {
            let hint = "this version plays scripts only; name one as scripted/FILE.json".to_owned();
            Err(Error::NoSuchModel { name: name.to_owned(), hint })
        }
    }
}
