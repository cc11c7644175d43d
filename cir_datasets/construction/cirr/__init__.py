"""CIRR's way to a benchmark (Liu et al., ICCV 2021, section 4): subsets of six, nine pairs in each.

`rule` says which images make a subset, `neighbours` finds them among many, `subsets` goes over a folder,
`pairs` draws pairs and dialogue paths, `tasks` writes pages for annotators, `answers` checks what they wrote,
and `pipeline` ties these to the stages of a folder and writes the benchmark.
"""
