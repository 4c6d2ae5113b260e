"""What a table says of a number: the verdicts and the hints."""

import pytest

from specexp import digits


def rows(lossy: bool = False, gamma_max: int = 16, **metrics: float | int | None) -> dict[str, tuple[str, str]]:
    return {name: (value, remark) for name, value, _, remark in digits.run_rows(metrics, gamma_max, lossy)}


@pytest.mark.parametrize(
    ("metrics", "lossy", "verdict"),
    [
        ({"lossless_pvalue": 0.5}, False, "no difference seen"),
        ({"lossless_pvalue": 0.002}, False, "no difference seen"),  # one right rule in five hundred
        ({"lossless_pvalue": 0.0009}, False, "NOT lossless: not the target's law"),
        ({"lossless_pvalue": 0.0}, True, "not claimed by this rule; a difference seen"),
        ({"lossless_pvalue": None, "tv_ranked_noise_floor": 0.0}, False, "nothing is left to chance"),
        ({"lossless_pvalue": None, "tv_ranked_noise_floor": 0.2}, False, "too few tokens to test"),
    ],
)
def test_the_verdict_on_losslessness(metrics: dict[str, float | None], lossy: bool, verdict: str) -> None:
    assert rows(lossy, **metrics)["lossless"][1].startswith(verdict)


def test_a_best_gamma_at_the_end_of_its_curve_is_not_taken_for_the_best() -> None:
    assert rows(gamma_best=16, speedup_best=2.0)["best gamma"] == ("16", "speedup 2.000; raise gamma_max")
    assert rows(gamma_best=0, gamma_max=0)["best gamma"] == ("0", "do not speculate; raise gamma_max")
    assert rows(gamma_best=0)["best gamma"] == ("0", "do not speculate")


def test_what_several_drafts_are_is_told() -> None:
    """Of one path alone nothing, but where a rule might have had more."""
    drafts = {"drafted_per_step": 12, "verified_per_step": 13, "acceptance_first": 0.9}

    def told(several: bool, **metrics: float) -> dict[str, str]:
        rows = digits.run_rows(drafts | metrics, 16, False, several)
        return {name: remark for name, _, _, remark in rows if name in ("drafted", "first kept")}

    assert told(True) == {"drafted": "tokens a step; 13 positions verified", "first kept": ""}
    assert told(True, acceptance_optimum=1.0)["first kept"] == "optimum 1.000"
    assert told(False) == {}
    assert told(False, acceptance_optimum=1.0) == {"first kept": "optimum 1.000"}


def test_rounding_is_no_error_and_no_bias() -> None:
    assert digits.percent(-1e-17) == "0.00 %"
    assert digits.percent(-0.0017) == "-0.17 %"
    shown = rows(tv_exact=3e-16, audit_bias=0.25)
    assert shown["exact bias"][0] == "0"
    assert shown["audit"] == ("0.2500", "the largest in small worlds")


def test_the_gain_has_a_sign_and_its_interval_in_percent() -> None:
    noisy = {"gain_over_token": 0.0454, "gain_over_token_low": 0.0439, "gain_over_token_high": 0.047}
    assert digits.gain(noisy, "gain_over_token") == ("+4.54", "[+4.39, +4.70]")
    assert digits.gain({"gain_over_token": -0.25}, "gain_over_token") == ("-25.00", "")
    assert digits.gain({"gain_over_token": 0.0}, "gain_over_token") == ("0", "")
    assert digits.gain({}, "gain_over_token") == ("", "")
    assert rows(**noisy, gain_over_token_source="expected")["gain over token"] == ("+4.54 %", "expected")
    assert "gain over token" not in rows(gain_over_token=0.0)  # the rule `token` itself


def test_a_bias_has_a_row_where_there_is_one() -> None:
    assert rows(bias=0.2, bias_source="exact")["bias"][0] == "0.2000"
    assert "bias" not in rows(bias=3e-17, bias_source="exact")
    assert "bias" not in rows(bias=None)
