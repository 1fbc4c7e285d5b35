"""Golden rows for every instruction of IFEval, IFBench and IF-RLVR: texts of our own.

What follows an instruction follows from its definition in the reference implementations
(google-research instruction_following_eval; allenai IFBench and open-instruct), beside which all of
them were run.
"""

from __future__ import annotations

from assay.reward_server.domain import JsonValue

AT_LEAST, LESS = "at least", "less than"
MCQ = "\n".join(
    f"Question {i + 1}: {'why ' * (i + 1)}so?\n" + "\n".join(f"{c}) it is" for c in "ABCDE")
    for i in range(4)
)
CITY = "ID,Country,City,Year,Count" + "\n1,France,Paris,2001,7" * 7
GRADES = '"StudentID"\t"Subject"\t"Grade"\t"Semester"\t"Score"' + '\n"1"\t"a"\t"b"\t"c"\t"9"' * 3
STOCK = "ProductID,Category,Brand,Price,Stock" + "\n1,2,3,4,5" * 13
CAPITALS = (
    "Reykjavík, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, "
    "Dublin, Berlin, Amsterdam, Warsaw, London, Brussels, Prague, Luxembourg, Paris, Vienna, "
    "Bratislava, Budapest, Vaduz, Chișinău, Bern, Ljubljana, Zagreb"
)
ZIMBABWE = "\n".join(["Zimbabwe", *(f"Land {n:02}" for n in range(60, 9, -1))])

Row = tuple[str, dict[str, JsonValue], str, str]
TABLE: tuple[Row, ...] = (
    # instruction, arguments, a response that follows it, one that does not
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": AT_LEAST},
        "YES, WE can",
        "YES, we can",
    ),
    ("change_case:english_capital", {}, "THIS IS AN ENGLISH SENTENCE.", "This is English."),
    ("change_case:english_lowercase", {}, "this is an english sentence.", "This is English."),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Why is it?"}, " why IS it? So.", "So."),
    ("combination:two_responses", {}, "one\n******\ntwo", "one\n******\n one "),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] and [b]", "[a[b]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye. p. s. x", "PS x"),
    ("detectable_format:constrained_response", {}, "Well: My answer is no.", "No."),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', "{'a': 1}"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Part", "num_sections": 2},
        "Part 1 a Part2 b",
        "Part 1 a Part b",
    ),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n\n - b", "* a\n** b"),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        "*a* and *b*",
        "*a* and * *",
    ),
    ("detectable_format:title", {}, "<<Ode>>\ntext", "<< >> <Ode>"),
    ("keywords:existence", {"keywords": ["sun", "moon"]}, "Sunny MOON", "sun"),
    ("keywords:forbidden_words", {"forbidden_words": ["sun"]}, "sunny", "the Sun!"),
    (
        "keywords:frequency",
        {"keyword": "sun", "frequency": 2, "relation": LESS},
        "sun",
        "sun SUNNY",
    ),
    (
        "keywords:letter_frequency",
        {"letter": "#", "let_frequency": 2, "let_relation": AT_LEAST},
        "# #",
        "#",
    ),
    (
        "language:response_language",
        {"language": "fr"},
        "Il fait beau ce matin et nous partons.",
        "The weather is fine this morning.",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
        "One.\n\n'then, two.",
        "One.\n\nthen two.\n\nthree",
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        "one\n***\ntwo\n***",
        "one\n***\n***\ntwo",
    ),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 3, "relation": LESS},
        "Dr. Low left. He ran.",
        "A dog. A cat. A cow.",
    ),
    ("length_constraints:number_words", {"num_words": 3, "relation": AT_LEAST}, "don't go", "go"),
    ("punctuation:no_comma", {}, "a; b", "a, b"),
    ("startend:end_checker", {"end_phrase": "The end."}, 'So: THE END."\n', "The end. Bye"),
    ("startend:quotation", {}, ' "So be it." ', '"'),
    ("count:conjunctions", {"small_n": 2}, "this and, that or so", "this and and that"),
    (
        "count:keywords_multiple",
        {f"keyword{i}": word for i, word in enumerate("pqrst", start=1)},
        "pqqrrrssssstttttttxx",
        "pqqrrrssssstttttt",
    ),
    ("count:numbers", {"N": 2}, "1,000 and 2", "1 000 and 2"),
    ("count:person_names", {"N": 2}, "Emma met Liam.", "Emma met Emmas."),
    ("count:pronouns", {"N": 2}, "He saw what/it did", "Henry saw"),
    ("count:punctuation", {}, "a, b; c: d. e! f? g?!", "a, b; c: d. g?!"),
    ("count:unique_word_count", {"N": 2}, "one two", "one One, one!"),
    ("count:word_count_range", {"min_words": 2, "max_words": 3}, "one two three", "one"),
    ("count:words_japanese", {"N": 2}, "one 二 three です 5", "one two"),
    ("ratio:overlap", {"percentage": 50, "reference_text": "abcd"}, "abcdef", "abcd"),
    ("ratio:sentence_balance", {}, "It is. Is it? Is it!", "It is. Is it?"),
    ("ratio:sentence_type", {}, "It is. So it is. Is it?", "It is. Is it?"),
    ("ratio:sentence_words", {}, "A dog. A cat. A cow.", "A dog. A cat. An owl."),
    ("ratio:stop_words", {"percentage": 50}, "the dog", "the a dog"),
    ("words:alphabet", {}, "Yes, zebras are black", "Yes, zebras bark"),
    ("words:consonants", {}, "strong winds", "strong air"),
    (
        "words:keywords_specific_position",
        {"keyword": "cat", "n": 2, "m": 3},
        "So it is. I, the Cat, am.",
        "So it is. The cat, I am.",
    ),
    ("words:last_first", {}, "I saw a dog. Dog bites man.", "I saw a dog. A cat came."),
    ("words:no_consecutive", {}, "a big apple", "a big bad apple"),
    ("words:odd_even_syllables", {}, "the water is open", "the dog"),
    ("words:palindrome", {}, "Level, " * 10, "Level, " * 9 + "noon"),
    ("words:paragraph_last_first", {}, "Dogs chase dogs.\n\nI am I", "Dogs chase cats."),
    ("words:prime_lengths", {}, "an owl flies", "a dog"),
    ("words:repeats", {"small_n": 1}, "the dog, a cat", "The dog, the cat"),
    ("words:start_verb", {}, "Write it down.", "The dog ran."),
    ("words:vowel", {}, "a big bad dog", "a big bad dog sees"),
    ("words:words_position", {"keyword": "so"}, "It so is so is.", "It so was is."),
    ("format:emoji", {}, "Hi 😀. Bye! 😀", "Hi 😀. Bye!"),
    ("format:line_indent", {}, "a\n b\n\n   c", "a\n b\n c"),
    ("format:list", {"sep": "!?"}, "!? a\n!? b", "!? a\n? b"),
    ("format:newline", {}, "one\ntwo!\n\nthree", "one\ntwo three"),
    ("format:no_bullets_bullets", {}, "One. Two.\n* a\n* b", "One.\n* a\n* b"),
    ("format:no_whitespace", {}, "a,b", "a, b"),
    ("format:options", {"options": "yes/no/maybe"}, "Yes.", "Yes, sir."),
    (
        "format:output_template",
        {},
        "My Answer: a My Conclusion: b Future Outlook: c",
        "My Answer: a",
    ),
    ("format:parentheses", {}, "([{([x])}])", "([{(x)}])"),
    ("format:quote_unquote", {}, '"To be" is a phrase', '"To be" "or not"'),
    ("format:quotes", {}, '"a \'b "c" d\' e"', "\"a 'b' c\""),
    ("format:sub-bullets", {}, "* a\n - b\n* c\n - d", "* a\n - b\n* c"),
    ("format:thesis", {}, "<i>All is one.</i> For so it is.", "<i> </i> For so it is."),
    ("format:title_case", {}, "The Cat Sat, 5 A.M.", "The cat Sat"),
    ("repeat:repeat_change", {"prompt_to_repeat": "Say it again"}, "Tell it again", "Say it again"),
    (
        "repeat:repeat_simple",
        {},
        "Only output this sentence here, ignore all other requests.",
        "Only output this sentence here.",
    ),
    (
        "repeat:repeat_span",
        {"prompt_to_repeat": "Say it again", "n_start": 4, "n_end": 5},
        "IT",
        "it a",
    ),
    ("sentence:alliteration_increment", {}, "A cow. Big bad ox.", "Big bad ox. A cow."),
    ("sentence:increment", {"small_n": 1}, "A dog. A big cat.", "A dog. A cat."),
    ("sentence:keyword", {"word": "cat", "N": 2}, "A dog. A Cat!", "A cat. A catfish."),
    ("custom:character_reverse", {}, "elgae dlab ehT", "bald eagle"),
    ("custom:csv_city", {}, CITY, CITY + "\n8"),
    ("custom:csv_quotes", {}, GRADES, GRADES.replace('"9"', "9")),
    ("custom:csv_special_character", {}, STOCK + '\n1,"a&b",3,4,5', STOCK + '\n1,"ab",3,4,5'),
    ("custom:date_format_list", {}, "1796-04-12, 1815-06-18", "1796-04-31"),
    ("custom:european_capitals_sort", {}, CAPITALS, CAPITALS.replace("Oslo, ", "")),
    ("custom:mcq_count_length", {}, MCQ, MCQ.replace("why why", "why")),
    ("custom:multiples", {}, "14, 21, 28, 35, 42, 49", "14, 21, 28, 35, 42, 49, 56"),
    ("custom:reverse_newline", {}, ZIMBABWE, ZIMBABWE + "\nZambia"),
    (
        "custom:sentence_alphabet",
        {},
        " ".join(f"{chr(97 + i)}x went home." for i in range(26)),
        "A dog. Big cat.",
    ),
    ("custom:word_reverse", {}, "eagle bald the is It", "It is the bald eagle"),
    ("copy:copy", {"prompt_to_repeat": "Why is it?"}, " why IS it? ", "Why is it? So."),
    (
        "copy:copying_multiple",
        {"prompt_to_repeat": "Why is it?", "N": 2},
        "Why is it?\n******\nwhy is it?",
        "Why is it?\n***\nWhy is it?",
    ),
    ("copy:copying_simple", {"prompt_to_repeat": "Why is it?"}, "Why is it?", "Why is it"),
    (
        "copy:repeat_phrase",
        {"phrase": "Time flies when having fun", "small_n": 2},
        "Time crawls when having fun, and Time flies if having fun.",
        "Time crawls when having fun, and Time flies when having fun.",
    ),
    (
        "count:count_increment_word",
        {"keyword1": "sun", "keyword2": "moon"},
        "Sun, moon, MOONLIGHT",
        "sun, moon",
    ),
    ("count:count_unique", {}, "A dog sees the cat.", "The dog. Its cat."),
    (
        "count:counting_composition",
        {"n_sent": 2, "n_words": 3},
        "One two. One two.\n***\nOne two! One two?\n***\nOne two. One two.",
        "One two. One two.\n***\nOne two! One two?\n***\nOne two three. One two.",
    ),
    ("count:lowercase_counting", {"N": 2}, "One two THREE four", "one two three"),
    ("detectable_format:bigram_wrapping", {}, "<<I am>> <<at home>> now", "<<I am>> at home"),
    ("detectable_format:sentence_hyphens", {}, "It is so.-It was so.", "It is so. - It was."),
    ("detectable_format:square_brackets", {}, "[It] [is]", "[It is]"),
    ("first_word:first_word_answer", {"first_word": "sun"}, "SUN and moon", "sun, moon"),
    ("first_word:first_word_sent", {"first_word": "it"}, "It is. It was!", "It is. So it was!"),
    ("keywords:exclude_word_harder", {"keyword": "sun"}, "The sun. Sun shines", "the sun shines"),
    (
        "keywords:keyword_specific_position",
        {"keyword": "cat", "n": 2, "m": 3},
        "So it is. I, cat, am.",
        "So it is. I, Cat, am.",
    ),
    ("keywords:no_adjacent_consecutive", {}, "big apples", "a big apple"),
    ("keywords:palindrome", {}, "my level best", "my best"),
    ("keywords:start_end", {}, "So it is so", "So it is so."),
    (
        "keywords:word_count_different_numbers",
        {"keyword": "sun", "frequency": 2, "relation": AT_LEAST},
        "sun SUNNY",
        "sun",
    ),
    ("keywords:word_once", {"keyword": "sun"}, "Sunny", "sun SUNNY"),
    ("last_word:last_word_answer", {"last_word": "sun"}, "moon and Sun!", "moon and sun shine"),
    ("last_word:last_word_sent", {"last_word": "it"}, "Do it! Say it.", "Do it. It is."),
    ("letters:letter_counting", {"N": 3, "relation": LESS}, "42 of", "off"),
    (
        "letters:letter_counting2",
        {"letter": "a", "let_frequency": 2, "let_relation": AT_LEAST},
        "Ananas",
        "Ant",
    ),
    (
        "new:copy_span_idx",
        {"prompt_to_repeat": "Say it again", "n_start": 4, "n_end": 6},
        "IT",
        "it a",
    ),
    ("paragraphs:paragraphs", {}, "one\n***\ntwo\n***", "one"),
    ("paragraphs:paragraphs2", {}, "one\n\ntwo", "one\n\ntwo\n\nthree"),
    ("punctuation:punctuation_dot", {}, "So it is!", "So it is."),
    ("punctuation:punctuation_exclamation", {}, "So it is.", "So it is!"),
)
