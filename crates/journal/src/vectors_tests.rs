use super::*;

#[test]
fn the_direction_counts_and_not_the_length() {
    let direction = |vector: &[f32]| quantize(vector).unwrap();
    let near = similarity(&direction(&[3.0, 4.0, 0.0]), &direction(&[0.3, 0.4, 0.0]));
    let across = similarity(&direction(&[1.0, 0.0, 0.0]), &direction(&[0.0, 5.0, 0.0]));
    let away = similarity(&direction(&[1.0, -2.0]), &direction(&[-1.0, 2.0]));

    assert!((near - 1.0).abs() < 0.02 && across.abs() < 0.02 && (away + 1.0).abs() < 0.02);
}

#[test]
fn a_vector_without_a_direction_is_none() {
    for vector in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0]] {
        assert_eq!(quantize(vector), None, "{vector:?}");
    }
}
