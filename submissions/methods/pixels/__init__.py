"""Weight-free methods: image only, text only and their sum on plain pixels."""
