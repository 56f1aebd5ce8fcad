use super::*;

/// M12, M14: what servers say when prompt and answer don't fit together, or when the answer alone is too long.
#[test]
fn the_limits_stand_in_the_words_of_every_server() {
    let window = |window: u64| StatedLimits { window: Some(window), answer: None };
    let answer = |answer: u64| StatedLimits { window: None, answer: Some(answer) };
    let table = [
        // vLLM, three versions.
        (
            "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens (808 in the messages, \
             8192 in the completion). Please reduce the length of the messages or completion.",
            window(4096),
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens \
             and your request has 808 input tokens (8192 > 4096 - 808).",
            window(4096),
        ),
        ("max_tokens=8192 cannot be greater than max_model_len=max_total_tokens=4096.", window(4096)),
        // Units, and numbers that say nothing certain.
        ("The prompt does not fit into the context window of 128k tokens.", window(128_000)),
        ("input is longer than the context window of 1M tokens", window(1_000_000)),
        ("the context window is 1.5 times too small", StatedLimits::default()),
        ("the context window is 2x smaller than the prompt", StatedLimits::default()),
        // llama.cpp
        (
            "request (9001 tokens) exceeds the available context size (4096 tokens), try increasing it",
            window(4096),
        ),
        // OpenAI
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
            window(8192),
        ),
        (
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            answer(16384),
        ),
        // TGI
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 808 `inputs` tokens and 8192 \
             `max_new_tokens`",
            window(4096),
        ),
        ("Input validation error: `inputs` must have less than 4095 tokens. Given: 9000", window(4095)),
        // LM Studio
        (
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length \
             of only 4096 tokens, which is not enough.",
            window(4096),
        ),
        // OpenRouter
        (
            "This endpoint's maximum context length is 4,096 tokens. However, you requested about 9000 tokens (808 of text \
             input, 8192 in the output).",
            window(4096),
        ),
        // SGLang
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 9000 tokens",
            window(4096),
        ),
        ("The input (9000 tokens) is longer than the model's context length (4096 tokens).", window(4096)),
        // Anthropic
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease",
            window(200_000),
        ),
        ("prompt is too long: 212345 tokens > 200000 maximum", window(200_000)),
        ("max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens", answer(8192)),
        // Gemini, xAI, Groq, DeepSeek
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            window(1_048_576),
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
            window(131_072),
        ),
        ("`max_tokens` must be less than or equal to `8192`, the maximum value", answer(8192)),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", answer(8192)),
        // Nothing is said.
        ("Please reduce the length of the messages or completion.", StatedLimits::default()),
        ("input length exceeds the context length", StatedLimits::default()),
        ("prompt is too long", StatedLimits::default()),
        ("", StatedLimits::default()),
    ];
    for (message, expected) in table {
        assert_eq!(stated_limits(message), expected, "{message}");
    }
}

#[test]
fn a_window_is_corrected_by_what_is_stated_or_else_by_half_of_what_was_refused() {
    let size = |prompt, answer| RefusedSize { prompt, answer };

    assert_eq!(corrected_window(100_000, Some(4096), size(800, 8192)), Some(4096));
    assert_eq!(
        corrected_window(4096, Some(4096), size(800, 1024)),
        None,
        "it is the prompt that is too long"
    );
    assert_eq!(corrected_window(4096, Some(8192), size(4000, 1024)), None);
    assert_eq!(corrected_window(100_000, None, size(800, 8192)), Some(4496));
    assert_eq!(
        corrected_window(100_000, None, size(60_000, 8192)),
        None,
        "a long prompt is made smaller instead"
    );
    assert_eq!(corrected_window(4496, None, size(800, 1124)), Some(1200));
    assert_eq!(corrected_window(1200, None, size(800, 300)), None, "there is nothing left to correct");
    assert_eq!(corrected_window(10, None, size(0, 8192)), Some(5));
}
