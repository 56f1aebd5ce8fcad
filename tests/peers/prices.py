"""What each of these calls costs, by the package genai-prices: JSON lines in, a price or null a line out."""

import json
import sys

from genai_prices import Usage, calc_price

for line in sys.stdin:
    call = json.loads(line)
    usage = Usage(
        input_tokens=call["input"],
        output_tokens=call["output"],
        cache_read_tokens=call["cached"],
        cache_write_tokens=call["written"],
    )
    try:
        price = float(calc_price(usage, model_ref=call["model"], provider_id=call["provider"]).total_price)
    except LookupError:
        price = None
    print(json.dumps(price))
