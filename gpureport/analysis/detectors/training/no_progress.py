"""Time after the last improvement of a validation metric."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpureport import columns
from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.events import Evaluations, find_evaluations
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "no_progress"
_RECORD = "a validation metric such as val_loss, by a tracker or with --training FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoProgress(ClassRule):
    """No validation metric improved in the last fifth of the job or more, with at least 10 evaluations.

    A validation metric is one whose name says so (val, valid, validation, eval, evaluation, test, dev) and which way
    it gets better: losses, perplexity and errors fall, accuracy, F1, AUC, BLEU and the like rise. The time counts
    from the last moment at which any of them reached its best value, to the end of the work or, where evaluations
    stopped before, to when the next one was due. A value that is not a number is no improvement. The smallest
    improvement counts: a noisy metric that no longer learns may still improve by chance, which shortens the time
    found.
    """

    name = _KIND
    recording = _RECORD

    fewest: Threshold = pragmatic(10.0, "rows", "with fewer, a pause in the progress looks like its end")
    stands: Threshold = pragmatic(0.2, "1", "share of the job; a noisy metric may rest as long before it improves")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding, for the whole job."""
        if not context.gpus():
            yield missing_metrics.not_recorded(_KIND, None, "gpu_utilization_ratio")
            return
        known = list(find_evaluations(context.recording))
        judged = [each for each in known if each.count >= self.fewest.value]
        if not judged:
            reason, code = self._explain_unjudged(context, known)
            yield NotJudged(kind=_KIND, device=None, reason=reason, recording=_RECORD, code=code)
            return
        last = max(judged, key=lambda each: int(each.times[each.best_row]))
        yield from self._judge_metric(context, last)

    def _explain_unjudged(self, context: Context, known: Sequence[Evaluations]) -> tuple[str, str]:
        """Return why no metric can be judged, and the code of that."""
        training = context.recording.training
        if not len(training):
            return "no training metrics were recorded", "no_training_metrics"
        if not columns.valid(training.column("timestamp")).any():
            return "the training metrics were recorded without times", missing_metrics.NO_TIMES
        if not known:
            return "none of the training metrics is a validation metric", "no_validation_metric"
        most = max(known, key=lambda each: each.count)
        count = phrases.count_of(most.count, "evaluation")
        return f"{most.metric.name} has {count}, fewer than {self.fewest.value:g}", "too_few_evaluations"

    def _judge_metric(self, context: Context, metric: Evaluations) -> Iterator[Finding]:
        job = context.window or context.whole
        best = min(max(int(metric.times[metric.best_row]), job.start), job.end)
        # until the last evaluation it is known that none was better, and until the next one nothing could be
        stood = Interval(best, max(min(int(metric.times[-1]), job.end), best))
        after = Interval(best, max(min(int(metric.times[-1]) + metric.longest_distance, job.end), best))
        share = stood.seconds / job.seconds if job.seconds else 0.0
        if stood.seconds == 0 or share < self.stands.value:
            return
        lost = after.seconds * len(context.gpus())
        value = float(metric.values[metric.best_row])
        yield Finding(
            kind=_KIND,
            severity=Severity.INFO,
            confidence=Confidence.MEDIUM,
            devices=(),
            intervals=(after,),
            evidence=(
                compare_with_limit("time after the best value", "share of the job", share, ">=", self.stands),
                compare_with_limit("evaluations", "count", metric.count, ">=", self.fewest),
                Evidence(metric=metric.metric.name, statistic="best", observed=value, unit=""),
            ),
            lost_gpu_seconds=lost,
            samples=metric.count,
            summary=(
                f"{metric.metric.name} was best ({value:.4g}) after "
                f"{phrases.duration((best - context.whole.start) / 1e6)}; no improvement in the "
                f"{phrases.gpu_time(lost)} since."
            ),
            recommendation=KINDS[_KIND].advice[""],
        )
