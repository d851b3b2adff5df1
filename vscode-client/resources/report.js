// Added to the page of the report where the editor shows it.
"use strict";
(() => {
    const editor = acquireVsCodeApi();

    // Links to files are for the editor; the others go the usual way.
    document.addEventListener(
        "click",
        (event) => {
            const link = event.target.closest?.('a[href^="vscode://file/"]');
            if (!link) return;
            event.preventDefault();
            event.stopPropagation();
            const [, column] = /:\d+:(\d+)$/.exec(link.textContent.trim()) ?? [];
            editor.postMessage({
                link: link.getAttribute("href"),
                column: Number(column ?? 1),
                isBeside: event.ctrlKey || event.metaKey,
            });
        },
        true,
    );

    // A page that is made anew is looked at where the last one was.
    const kept = editor.getState();
    if (kept) window.scrollTo(0, kept.top);
    window.addEventListener("scrollend", () => editor.setState({ top: window.scrollY }));
})();
