"""What people read of each outcome of a rule; JSON and the types of JUnit keep the names of old."""

from gpureport.findings import CheckOutcome

OUTCOME_WORDS = {outcome: outcome.value for outcome in CheckOutcome} | {
    CheckOutcome.BROKEN: "failed",
    CheckOutcome.CANNOT_JUDGE: "not assessed",
}
