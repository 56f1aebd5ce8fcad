use longhaul_protocol::Seq;

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// Records of a session: of this one, or of the one with this key. `to` is absent if one record is named.
    Records { key: Option<String>, from: Seq, to: Option<Seq> },
    /// A page of memory, by its name.
    Page(String),
}

impl Reference {
    /// Parses a reference. Brackets around it are ignored: it is shown in brackets.
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim();
        let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text).trim();
        let page = || Self::Page(text.to_owned());
        let Some((key, numbers)) = text.rsplit_once('#') else { return page() };
        let key = Some(key.to_owned()).filter(|key| !key.is_empty());
        let (from, to) = match numbers.split_once('-') {
            Some((from, to)) => (from.parse(), to.parse().ok()),
            None => (numbers.parse(), None),
        };
        match from {
            Ok(from) if from > 0 && (to.is_some() || !numbers.contains('-')) => {
                Self::Records { key, from, to }
            }
            _ => page(),
        }
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
