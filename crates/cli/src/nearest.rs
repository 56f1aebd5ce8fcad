//! "Did you mean …?"

/// The known names that are most like `name`, the nearest first, at most three. Those below `min_similarity` (Jaro-Winkler, 0 to 1) are
/// left out.
pub(crate) fn nearest<'a>(
    known: impl Iterator<Item = &'a str>,
    name: &str,
    min_similarity: f64,
) -> Vec<&'a str> {
    let mut near: Vec<(f64, &str)> = known
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(similarity, _)| *similarity > min_similarity)
        .collect();
    near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    near.into_iter().take(3).map(|(_, known)| known).collect()
}
